package ask

// Watch is what the flags of devmap watch ask for.
type Watch struct {
	PID                      int64 // 0: none
	Strict, NoHook, Baseline bool
	Snapshot                 string
}

// watchFlags are those of what is watched.
var watchFlags = []flag{
	{
		name: "pid", at: func(request *Request) any { return &request.Watch.PID }, on: onWatch,
		help: "Watch a running process and its children", also: []string{"p", "process"},
	},
	{
		name: "baseline", at: func(request *Request) any { return &request.Watch.Baseline }, on: onWatch, defaultValue: "false",
		help: "Check that COMMAND releases all GPU memory",
	},
	{
		name: "strict", at: func(request *Request) any { return &request.Watch.Strict }, on: onWatch, defaultValue: "false",
		help: "Exit with status 4 if the verdict is fail",
	},
	{
		name: "no-hook", at: func(request *Request) any { return &request.Watch.NoHook }, on: onWatch, defaultValue: "false",
		help: "Do not ask PyTorch for its peaks; use NVML only",
	},
	{
		name: "snapshot", at: func(request *Request) any { return &request.Watch.Snapshot }, on: onWatch,
		help: "Write PyTorch memory snapshots, one FILE per process", also: []string{"memory-snapshot"},
	},
}
