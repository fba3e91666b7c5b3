// Package show is what people read of an answer: tables and bars, the
// certificate, what binds and what would help.
package show
