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
func Solve(ctx context.Context, m *Model, o Options) (Result, error) {
	if err := m.Check(); err != nil {
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
	in.set(ctx, o)
	in.pass(ctx, m)
	in.must(ctx, "Highs_run")
	r := in.result(ctx, m)
	if r.Status == InfeasibleOrUnbounded && in.err == nil { // presolve cannot tell; the simplex method can
		in.must(ctx, "Highs_setStringOptionValue", in.text(ctx, "presolve"), in.text(ctx, "off"))
		in.must(ctx, "Highs_run")
		r = in.result(ctx, m)
	}
	if in.err != nil {
		return Result{}, ended(ctx, in.err)
	}
	return r, nil
}

// ended prefers the context's error to that of the call it cut off.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("HiGHS was cut off: %w", ctx.Err())
	}
	return err
}

// set hands over the options.
func (in *instance) set(ctx context.Context, o Options) {
	in.must(ctx, "Highs_setBoolOptionValue", in.text(ctx, "output_flag"), 0)
	in.must(ctx, "Highs_setStringOptionValue", in.text(ctx, "parallel"), in.text(ctx, "off"))
	in.double(ctx, "mip_rel_gap", o.Gap)
	in.double(ctx, "mip_abs_gap", max(o.AbsoluteGap, 1e-6))
	limit := o.TimeLimit
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
func (in *instance) pass(ctx context.Context, m *Model) {
	var cost, lower, upper, rowLower, rowUpper, value []float64
	var start, index, integer []int32
	for _, c := range m.Columns {
		cost, lower, upper = append(cost, c.Cost), append(lower, c.Lower), append(upper, c.Upper)
		kind := int32(0)
		if c.Integer {
			kind = 1
		}
		integer = append(integer, kind)
	}
	for _, r := range m.Rows {
		rowLower, rowUpper = append(rowLower, r.Lower), append(rowUpper, r.Upper)
		start = append(start, int32(len(index)))
		for _, t := range r.Terms {
			index, value = append(index, int32(t.Column)), append(value, t.Coefficient)
		}
	}
	const byRow, minimise = 2, 1
	args := []uint64{
		uint64(len(m.Columns)), uint64(len(m.Rows)), uint64(len(index)), byRow, minimise, api.EncodeF64(0),
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
func (in *instance) result(ctx context.Context, m *Model) Result {
	const feasible = 2
	r := Result{Objective: math.Inf(1), Bound: math.Inf(-1)}
	r.Status = statusOf(api.DecodeI32(in.call(ctx, "Highs_getModelStatus", uint64(in.highs))))
	at := in.put(ctx, make([]byte, 8))
	info := func(function, name string) uint64 {
		in.must(ctx, function, in.text(ctx, name), at)
		return at
	}
	if slices.ContainsFunc(m.Columns, func(c Column) bool { return c.Integer }) {
		bound := in.readDoubles(info("Highs_getDoubleInfoValue", "mip_dual_bound"), 1)
		if in.err == nil {
			r.Bound = bound[0]
		}
	}
	info("Highs_getIntInfoValue", "primal_solution_status")
	if in.err != nil {
		return r
	}
	if code, _ := in.module.Memory().ReadUint32Le(uint32(at)); code != feasible {
		return r
	}
	values := in.doubles(ctx, make([]float64, len(m.Columns)))
	in.must(ctx, "Highs_getSolution", values, 0, 0, 0)
	r.Values = in.readDoubles(values, len(m.Columns))
	r.Objective = math.Float64frombits(in.call(ctx, "Highs_getObjectiveValue", uint64(in.highs)))
	if r.Status == Optimal && math.IsInf(r.Bound, -1) {
		r.Bound = r.Objective
	}
	return r
}
