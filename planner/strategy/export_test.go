package strategy

// Failed is what tests look at that is no API.
var Failed = failed
