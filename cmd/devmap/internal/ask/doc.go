// Package ask is what the command's flags ask for. A flag is one declaration in
// its table; parsing, help, completion, what lies over a plan file, what
// reproduces a row and what a hint prints are read off it. The library names
// fields, and they become flags here.
package ask
