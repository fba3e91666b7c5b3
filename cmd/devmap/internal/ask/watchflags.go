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
		help: "watch a process that runs already, with all that descend from it, in place of a COMMAND", also: []string{"p", "process"},
	},
	{
		name: "baseline", at: func(request *Request) any { return &request.Watch.Baseline }, on: onWatch, defaultValue: "false",
		help: "judge what COMMAND leaves on the GPUs that it sees: a certificate; takes no PLAN, or one",
	},
	{
		name: "strict", at: func(request *Request) any { return &request.Watch.Strict }, on: onWatch, defaultValue: "false",
		help: "exit with 4 where the verdict is fail, or that of --baseline no pass, though COMMAND ended with another status",
	},
	{
		name: "no-hook", at: func(request *Request) any { return &request.Watch.NoHook }, on: onWatch, defaultValue: "false",
		help: "do not have torch tell its peaks as COMMAND's processes end: what NVML shows is all",
	},
	{
		name: "snapshot", at: func(request *Request) any { return &request.Watch.Snapshot }, on: onWatch,
		help: "have torch write its memory snapshot, a file a process beside this one with its number in the name", also: []string{"memory-snapshot"},
	},
}
