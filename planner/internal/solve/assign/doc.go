// Package assign places independent items on devices, any item on any device,
// so that the largest share of a device's budget is least, and proves it. With
// equal budgets this is the problem that scheduling calls P||Cmax.
//
// [Solve] finds good answers with LPT (Graham, 1969), MULTIFIT (Coffman, Garey
// and Johnson, 1978), differencing (Karmarkar and Karp, 1982) and local search,
// bounds from below with the average, the largest items (Dell'Amico and
// Martello, ORSA Journal on Computing 7, 1995) and subset sums, and closes what
// is left by asking "does it fit under this limit?" for limits from the bound
// upwards, as Schreiber, Korf and Moffitt do (Journal of the ACM 65, 2018). The
// question is answered by bin completion (Korf, AAAI 2002 and IJCAI 2003): the
// largest item left, with every set of items that may share its device. Equal
// sizes count as one, so a model of many equal layers is a short problem. Where
// that search is long, prices from the linear program over sets (Gilmore and
// Gomory, 1961) cut it short.
//
// All comparisons are between integers or exact fractions.
package assign
