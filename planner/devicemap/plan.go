package devicemap

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// The versions of the two formats: a plan, which commands read, and a front, which lists several
// maps.
const (
	planVersion  = "devmap.plan/v1"
	frontVersion = "devmap.front/v1"
)

// Plan is the plan file: the map, the model and workload it is for, and its certificate.
type Plan struct {
	FormatVersion string `json:"format_version"`
	// Model names the model that the plan is for.
	Model struct {
		Name    string `json:"name"`
		Source  string `json:"source"`
		Digest  string `json:"digest"`
		Params  int64  `json:"params"`  // number of elements of parameters, tied ones once
		Buffers int64  `json:"buffers"` // number of elements of buffers
		// AutoClass is [modelgraph.Graph.AutoClass].
		AutoClass string `json:"auto_class,omitzero"`
		// Transformers is [modelgraph.Graph.Transformers].
		Transformers string `json:"transformers,omitzero"`
	} `json:"model"`
	Workload  costmodel.Workload `json:"workload"`
	Topology  costmodel.Topology `json:"topology"`
	DeviceMap Flat               `json:"device_map,omitzero"`
	Stages    []Stage            `json:"stages,omitzero"`
	Shards    *costmodel.Shards  `json:"shards,omitzero"`
	// UnitKinds lists the units of each kind ([modelgraph.Unit.Kind]) in execution order. It leaves
	// out units of unknown kind.
	UnitKinds map[string][]string `json:"unit_kinds,omitzero"`
	// Phases and Pipeline describe a diffusion pipeline: its phases, and its workload.
	Phases   []Phase        `json:"phases,omitzero"`
	Pipeline jsontext.Value `json:"pipeline,omitzero"`
	Devices  []Prediction   `json:"devices"`
	// Objective is the minimized quantity and what is proved about it.
	Objective struct {
		Name       string  `json:"name"`
		Value      float64 `json:"value"`
		LowerBound float64 `json:"lower_bound"`
		Gap        float64 `json:"gap"`
		Status     string  `json:"status"`
		Bound      string  `json:"bound"`
	} `json:"objective"`
	// Offload describes the offloaded units; zero without offload. Bytes are copied to the first
	// GPU in each forward, and FromDiskBytes of them are read from disk. No map copies less than
	// LowerBoundBytes.
	Offload struct {
		Bytes           int64 `json:"bytes"`
		FromDiskBytes   int64 `json:"from_disk_bytes"`
		LowerBoundBytes int64 `json:"lower_bound_bytes"`
	} `json:"offload,omitzero"`
	// Verdict is the worst verdict of the devices. Reading computes it for older plans without the
	// field.
	Verdict   Verdict `json:"verdict,omitzero"`
	Imbalance float64 `json:"imbalance"`
	// KVTokens are those of the cache of vLLM or SGLang, in all replicas.
	KVTokens    int64    `json:"kv_tokens,omitzero"`
	StepSeconds *float64 `json:"step_seconds"`
	Warnings    []string `json:"warnings"`
}

// NewPlan returns the plan of a map and its predictions. The map is nil if every GPU runs the whole
// model. The caller adds the objective, offload, shards of parameters, and warnings other than
// about tight devices.
func NewPlan(graph *modelgraph.Graph, table *costmodel.Table, topo *costmodel.Topology, placed Map, devices []Prediction) *Plan {
	plan := &Plan{
		FormatVersion: planVersion, Workload: table.Workload, Topology: *topo, Devices: devices,
		Verdict: worst(devices), Imbalance: imbalance(devices), StepSeconds: StepSeconds(table, topo, placed),
	}
	plan.Warnings = slices.Concat(poolNotes(devices, table.Workload.Runtime), bandNotes(table.Band, devices), preparedNotes(table, devices), loadingNotes(table, placed, devices))
	plan.describe(graph)
	if placed != nil {
		plan.DeviceMap, plan.Stages = placed.Flatten(graph), timedStages(graph, table, topo, placed)
	}
	return plan
}

// NewServingPlan returns the plan of an engine that serves. It has no steps.
func NewServingPlan(graph *modelgraph.Graph, workload *costmodel.Workload, topo *costmodel.Topology, placed Map, devices []Prediction) *Plan {
	plan := &Plan{
		FormatVersion: planVersion, Workload: *workload, Topology: *topo, Devices: devices,
		Verdict: worst(devices), Imbalance: imbalance(devices), Warnings: []string{},
	}
	if placed != nil {
		plan.DeviceMap = placed.Flatten(graph)
	}
	plan.describe(graph)
	return plan
}

// describe fills in the model and the kinds of its units.
func (plan *Plan) describe(graph *modelgraph.Graph) {
	model := &plan.Model
	model.Name, model.Source, model.Digest, model.Params = graph.Name, graph.Source, graph.Digest(), graph.ParamCount()
	model.AutoClass, model.Transformers = graph.AutoClass, graph.Transformers
	for i := range graph.Layers {
		for j := range graph.Layers[i].Buffers {
			model.Buffers += graph.Layers[i].Buffers[j].Numel
		}
	}
	for i := range graph.Units {
		if unit := &graph.Units[i]; unit.Kind != "" {
			if plan.UnitKinds == nil {
				plan.UnitKinds = map[string][]string{}
			}
			plan.UnitKinds[unit.Kind] = append(plan.UnitKinds[unit.Kind], unit.Name)
		}
	}
}

// WriteJSON writes a value as indented JSON, in the form of plan files.
func WriteJSON(writer io.Writer, value any) error {
	if err := json.MarshalWrite(writer, value, json.Deterministic(true), json.FormatNilSliceAsNull(false), jsontext.Multiline(true), jsontext.WithIndent(" ")); err != nil {
		return err
	}
	_, err := io.WriteString(writer, "\n")
	return err
}

// severalError says that the file is a front, not a map.
type severalError struct{ file string }

// Error implements error.
func (err *severalError) Error() string { return err.Words(costmodel.Setting.String) }

// Words returns the message. name formats its settings.
func (err *severalError) Words(name func(costmodel.Setting) string) string {
	msg := costmodel.Messagef("%q holds several maps: `devmap check MODEL MAP` takes a point's device_map, saved alone, with the point's %v and %v; a plan is of one map, as with %v or memory", frontVersion, costmodel.Setting{Field: "schedule"}, costmodel.Setting{Field: "recompute"}, costmodel.Set("objective", "time"))
	return (&modelgraph.SyntaxError{File: err.file, Place: "format_version", Msg: msg.Words(name)}).Error()
}

// maxMapBytes bounds a device map or plan: 100,000 modules take 10 MB.
const maxMapBytes = 256 << 20

// ReadMap reads a plan or any flat device map, for which plan is nil.
func ReadMap(path string) (flat Flat, plan *Plan, faults []Fault, err error) {
	data, err := modelgraph.ReadSmall(path, "a device map", maxMapBytes)
	if err != nil {
		return nil, nil, nil, err
	}
	return parseMap(path, data)
}

// parseMap is [ReadMap] for bytes; file is the name in errors.
func parseMap(file string, data []byte) (Flat, *Plan, []Fault, error) {
	var head map[string]jsontext.Value
	if err := modelgraph.DecodeJSON(file, data, &head, false); err != nil {
		return nil, nil, nil, err
	}
	if _, ok := head["format_version"]; !ok {
		for _, key := range []string{"workload", "topology", "device_map"} {
			if value := head[key]; value.Kind() == '{' {
				return nil, nil, nil, &modelgraph.SyntaxError{File: file, Place: "format_version", Msg: fmt.Sprintf("missing, and %q is a plan's: a plan has %q there; a device map alone is module path → device", key, planVersion)}
			}
		}
		if value := head["model_type"]; value.Kind() == '"' {
			return nil, nil, nil, &modelgraph.SyntaxError{File: file, Place: "model_type", Msg: "this is a model's config, and neither a plan nor a device map (module path → device)"}
		}
		for _, key := range []string{"stages", "fpgas"} { // keys of Piper and of dnn-partitioning
			if value := head[key]; value.Kind() == '[' {
				return nil, nil, nil, &modelgraph.SyntaxError{File: file, Place: key, Msg: "this is a split of a posed problem, as devmap plan writes it in its authors' form, and no device map: plan checked it when it wrote it, and check judges maps of models"}
			}
		}
		flat, faults, err := readFlat(file, data)
		return flat, nil, faults, err
	}
	if string(head["format_version"]) == strconv.Quote(frontVersion) {
		return nil, nil, nil, &severalError{file}
	}
	var version string
	if json.Unmarshal(head["format_version"], &version) == nil && version != planVersion {
		return nil, nil, nil, &modelgraph.SyntaxError{File: file, Place: "format_version", Msg: fmt.Sprintf("%q is not %q", version, planVersion)}
	}
	plan, err := parsePlan(file, data)
	if err != nil {
		return nil, nil, nil, err
	}
	return plan.DeviceMap, plan, nil, nil
}

// ReadPlan reads a plan file, and refuses a bare map. content is the file's content if the caller
// has read it already.
func ReadPlan(path string, content ...[]byte) (*Plan, error) {
	data := slices.Concat(content...)
	if len(content) == 0 {
		var err error
		if data, err = modelgraph.ReadSmall(path, "a device map", maxMapBytes); err != nil {
			return nil, err
		}
	}
	_, plan, _, err := parseMap(path, data)
	if err == nil && plan == nil {
		return nil, &modelgraph.SyntaxError{File: path, Place: "format_version", Msg: fmt.Sprintf("missing: this is no plan (%s), as `devmap plan -o` writes it", planVersion)}
	}
	return plan, err
}

// parsePlan reads a plan and refuses one that contradicts itself. Every command reads plans here.
// [Check] compares the plan with its model.
func parsePlan(file string, data []byte) (*Plan, error) {
	var p struct {
		Plan
		RawMap      jsontext.Value `json:"device_map,omitzero"`
		RawTopology jsontext.Value `json:"topology,omitzero"`
	}
	if err := modelgraph.DecodeJSON(file, data, &p, true); err != nil {
		return nil, err
	}
	if p.FormatVersion != planVersion {
		return nil, &modelgraph.SyntaxError{File: file, Place: "format_version", Msg: fmt.Sprintf("%q is not %q", p.FormatVersion, planVersion)}
	}
	if p.RawTopology == nil {
		return nil, &modelgraph.SyntaxError{File: file, Place: "topology", Msg: "missing"}
	}
	topo, err := costmodel.ParseTopology(file, p.RawTopology, func(string) costmodel.Device { return costmodel.Device{} })
	if err != nil {
		return nil, err
	}
	p.Topology = *topo
	if err := p.mapPresent(file, p.RawMap != nil); err != nil {
		return nil, err
	}
	if err := p.consistent(file); err != nil {
		return nil, err
	}
	var section *pipelineSection
	if p.Pipeline != nil {
		if section, err = parsePipeline(file, data); err != nil {
			return nil, err
		}
	}
	if err := p.diffusionFault(section).in(file); err != nil || p.RawMap == nil {
		return &p.Plan, err
	}
	err = p.readMap(file, p.RawMap)
	return &p.Plan, err
}

// mapPresent reports a plan that lacks the map its strategy needs, or has a map that it does not
// need.
func (plan *Plan) mapPresent(file string, present bool) error {
	fault := func(format string, args ...any) error { return faultOf("device_map", format, args...).in(file) }
	switch replicated := plan.Workload.Strategy.Traits().Replicated; {
	case replicated && present: // every GPU runs the whole model
		return fault("under %s every GPU runs the whole model: there is none", plan.Workload.Strategy)
	case len(plan.Phases) > 0 && present:
		return fault("the phases of a diffusion pipeline have none")
	case !replicated && !present && len(plan.Phases) == 0:
		return fault("missing")
	}
	return nil
}

// readMap reads the plan's device map and checks it against the plan's devices and stages.
func (plan *Plan) readMap(file string, text jsontext.Value) error {
	if err := plan.spread(file); err != nil {
		return err
	}
	flat, faults, err := readFlat(file, text)
	switch plan.DeviceMap = flat; {
	case err != nil:
		return err
	case len(faults) > 0:
		return faultOf("device_map", "%s", faults[0]).in(file)
	}
	if err := plan.placeable(file); err != nil {
		return err
	}
	return plan.stagesFault().in(file)
}
