// Package show prints answers for people: tables and bars, the certificate, the limiting device,
// and changes that would help.
package show
