// The pictures that are curves (bars: answer_bars.h). A plot without data has nothing to draw.
#pragma once

#include <initializer_list>
#include <vector>

#include "bounds/bounds.h"
#include "collective/collective_answer.h"
#include "hw/hw.h"
#include "model_card/model_figures.h"
#include "report/plot.h"
#include "roofline/roofline.h"
#include "scaling_law/scaling.h"
#include "sensitivity/sensitivity.h"
#include "serve/serve_question.h"
#include "train/curve.h"

namespace scalecalc {

/// Throughput over chips beside a linear one, and with --pareto time against cost.
std::vector<Plot> train_curve_plots(const TrainCurve& curve);
/// Throughput of a chip against speed for a user.
Plot serve_plot(const ServeAnswer& answer);
/// And of some of its points the decode step and a chip's memory by part, of the best its operations under the chip's
/// roofs and where it lies.
std::vector<Plot> serve_page_plots(const ServeAnswer& answer);
/// Roof, ridge and points; without FLOPs or bytes time over the size that is swept.
Plot roofline_plot(const RooflineQuestion& question, const RooflineAnswer& found);
/// FLOP/s over FLOP/byte below a rate of compute and one of memory.
struct ChipRoof {
  std::string name;
  double flops_per_s = 0, bytes_per_s = 0;
  double ridge() const { return flops_per_s / bytes_per_s; }
};
/// The formats whose peaks bound a job, each once, with the chip's memory.
std::vector<ChipRoof> roofs_of(const HardwareSpec& hw, std::initializer_list<DType> formats);
/// Roofs, their ridges, and points below them.
Plot roofs_with_points(const std::vector<ChipRoof>& roofs, std::vector<PlotSeries> points);
/// The roofs of several chips, or of one chip in its number formats.
Plot hw_plot(const HwAnswer& answer);
/// Time over bytes, or over members of the group.
Plot collective_plot(const CollectiveAnswer& answer);
/// Throughput of decoding and its step over the batch, where they are known.
std::vector<Plot> bounds_plots(const BoundsAnswer& answer);
/// The scores' share of the forward pass over the length of a sequence.
Plot model_plot(const ModelFigures& found);
/// Loss over parameters for one budget of FLOPs, and what each law would train.
std::vector<Plot> scaling_plots(const ScalingQuestion& question, const ScalingAnswer& found);
/// What each input does to the step, that of the widest swing first.
Plot tornado_plot(const std::vector<InputElasticity>& elasticities, double swing);
/// The tornado of the inputs, and the curves of --set ranges.
std::vector<Plot> sensitivity_plots(const SensitivityAnswer& answer);

}  // namespace scalecalc
