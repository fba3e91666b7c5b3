package strategy

import "time"

// Failed is for tests; it is not API.
var Failed = failed

// BriefOver is whether a search with open degrees tries no other change.
func BriefOver(end time.Time, found, wide bool) bool { return (&brief{end, found, wide}).over() }
