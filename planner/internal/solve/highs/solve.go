package highs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Solve minimises the model. Infeasible and unbounded models are results, not
// errors. At a time limit, or where the context's deadline is near, the result
// holds the best solution found; a context that ends by itself is an error, as
// HiGHS is then cut off in mid-step. Many solves may run at once.
func Solve(ctx context.Context, model *Model, options Options) (Result, error) {
	if err := model.Check(); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	e, err := compiled()
	if err != nil {
		return Result{}, err
	}
	in, err := e.instance(ctx)
	if err != nil {
		return Result{}, ended(ctx, err)
	}
	defer in.close(context.WithoutCancel(ctx))
	in.set(ctx, options)
	in.pass(ctx, model)
	in.must(ctx, "Highs_run")
	result := in.result(ctx, model)
	if result.Status == InfeasibleOrUnbounded && in.err == nil { // presolve cannot tell; the simplex method can
		in.must(ctx, "Highs_setStringOptionValue", in.text(ctx, "presolve"), in.text(ctx, "off"))
		in.must(ctx, "Highs_run")
		result = in.result(ctx, model)
	}
	if in.err != nil {
		return Result{}, ended(ctx, in.err)
	}
	return result, nil
}

// ended prefers the context's error to that of the call it cut off.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("HiGHS was cut off: %w", ctx.Err())
	}
	return err
}

// set hands over the options.
func (in *instance) set(ctx context.Context, options Options) {
	in.must(ctx, "Highs_setBoolOptionValue", in.text(ctx, "output_flag"), 0)
	in.must(ctx, "Highs_setStringOptionValue", in.text(ctx, "parallel"), in.text(ctx, "off"))
	in.double(ctx, "mip_rel_gap", options.Gap)
	in.double(ctx, "mip_abs_gap", max(options.AbsoluteGap, 1e-6))
	limit := options.TimeLimit
	if end, ok := ctx.Deadline(); ok {
		left := max(time.Until(end)*9/10, time.Millisecond)
		if limit <= 0 || left < limit {
			limit = left
		}
	}
	if limit > 0 {
		in.double(ctx, "time_limit", limit.Seconds())
	}
}

func (in *instance) double(ctx context.Context, option string, value float64) {
	in.must(ctx, "Highs_setDoubleOptionValue", in.text(ctx, option), api.EncodeF64(value))
}

// pass hands over the model, row by row.
func (in *instance) pass(ctx context.Context, model *Model) {
	var cost, lower, upper, rowLower, rowUpper, value []float64
	var start, index, integer []int32
	for _, column := range model.Columns {
		cost, lower, upper = append(cost, column.Cost), append(lower, column.Lower), append(upper, column.Upper)
		kind := int32(0)
		if column.Integer {
			kind = 1
		}
		integer = append(integer, kind)
	}
	for _, row := range model.Rows {
		rowLower, rowUpper = append(rowLower, row.Lower), append(rowUpper, row.Upper)
		start = append(start, int32(len(index)))
		for _, term := range row.Terms {
			index, value = append(index, int32(term.Column)), append(value, term.Coefficient)
		}
	}
	const byRow, minimise = 2, 1
	args := []uint64{
		uint64(len(model.Columns)), uint64(len(model.Rows)), uint64(len(index)), byRow, minimise, api.EncodeF64(0),
		in.doubles(ctx, cost), in.doubles(ctx, lower), in.doubles(ctx, upper),
		in.doubles(ctx, rowLower), in.doubles(ctx, rowUpper),
		in.ints(ctx, start), in.ints(ctx, index), in.doubles(ctx, value),
	}
	if slices.Contains(integer, 1) {
		in.must(ctx, "Highs_passMip", append(args, in.ints(ctx, integer))...)
		return
	}
	in.must(ctx, "Highs_passLp", args...)
}

// result reads what was found.
func (in *instance) result(ctx context.Context, model *Model) Result {
	const feasible = 2
	result := Result{Objective: math.Inf(1), Bound: math.Inf(-1)}
	result.Status = statusOf(api.DecodeI32(in.call(ctx, "Highs_getModelStatus", uint64(in.highs))))
	at := in.put(ctx, make([]byte, 8))
	info := func(function, name string) uint64 {
		in.must(ctx, function, in.text(ctx, name), at)
		return at
	}
	if slices.ContainsFunc(model.Columns, func(column Column) bool { return column.Integer }) {
		bound := in.readDoubles(info("Highs_getDoubleInfoValue", "mip_dual_bound"), 1)
		if in.err == nil {
			result.Bound = bound[0]
		}
	}
	info("Highs_getIntInfoValue", "primal_solution_status")
	if in.err != nil {
		return result
	}
	if code, _ := in.module.Memory().ReadUint32Le(uint32(at)); code != feasible {
		return result
	}
	values := in.doubles(ctx, make([]float64, len(model.Columns)))
	in.must(ctx, "Highs_getSolution", values, 0, 0, 0)
	result.Values = in.readDoubles(values, len(model.Columns))
	result.Objective = math.Float64frombits(in.call(ctx, "Highs_getObjectiveValue", uint64(in.highs)))
	if result.Status == Optimal && math.IsInf(result.Bound, -1) {
		result.Bound = result.Objective
	}
	return result
}
