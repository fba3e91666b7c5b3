// Package page makes one HTML page of a plan, a run or a watched command. Everything that the page
// draws is computed here; the scripts in ui only draw it. docs/formats/page.md describes the data.
//
// Sums are exact: the live buffers of a peak add up to the peak that the plan prints. The page's size is
// bounded for any model and any number of GPUs.
package page
