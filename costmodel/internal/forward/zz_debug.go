package forward

var debugLog func(bytes int64)
