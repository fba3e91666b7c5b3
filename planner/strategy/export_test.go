package strategy

// Failed is for tests; it is not API.
var Failed = failed
