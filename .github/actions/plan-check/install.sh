#!/bin/sh
# install.sh PACKAGE SHA256: fetches the .deb if PACKAGE is an https address, and installs it if its sum is SHA256; fails
# (1) before anything is installed if not. APT names the installer.
set -eu
package=$1 sum=$2
case "$sum" in
  *[!0-9a-fA-F]* | '') echo "sha256: '$sum' is not a SHA-256 sum" >&2; exit 1 ;;
esac
[ ${#sum} -eq 64 ] || { echo "sha256: '$sum' has ${#sum} digits, not 64" >&2; exit 1; }
as_root=""
[ "$(id -u)" -eq 0 ] || as_root=sudo
apt=${APT:-apt-get}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
file=$place/scalecalc.deb
case "$package" in
  https://*)
    command -v curl >/dev/null || { $as_root $apt update -qq; $as_root $apt install -y -qq --no-install-recommends curl ca-certificates; }
    curl --fail --silent --show-error --location --proto '=https' --output "$file" "$package" ;;
  http://*) echo "package: $package is not fetched without https" >&2; exit 1 ;;
  *) cp "$package" "$file" ;;
esac
# The copy that was checked is what is installed.
echo "$(printf %s "$sum" | tr A-F a-f)  $file" | sha256sum --check --quiet - || {
  echo "package: $package is not the one with the SHA-256 $sum; it was not installed" >&2
  exit 1
}
chmod a+rx "$place"
$as_root $apt update -qq
$as_root $apt install -y -qq --no-install-recommends "$file"
