// Pages of 2 MiB under the heap: where a page fault is dear, as in virtual machines, a third of a search is faults.
#pragma once

namespace scalecalc {

/// Asks the kernel for huge pages under what the calling thread allocates from now on; once per thread, later calls do
/// nothing. At the first call, that of the main thread, also reserves room (no memory is taken until it is used);
/// until then calls of other threads do nothing.
/// Best effort: where the kernel or a limit refuses, the heap stays as it is. Returns false where nothing can be asked:
/// without glibc, under AddressSanitizer.
bool use_huge_pages();

}  // namespace scalecalc
