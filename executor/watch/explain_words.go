package watch

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// comparedTo compares a figure with its prediction.
func comparedTo(measured, predicted int64) string {
	far := distance(measured, predicted)
	switch {
	case far == 0:
		return "as predicted to the byte"
	case predicted == 0:
		return "and none were predicted"
	case same(measured, predicted):
		return fmt.Sprintf("as predicted (%v, %s apart)", costmodel.Bytes(predicted), share(far, predicted))
	case measured > predicted:
		return fmt.Sprintf("%v (%s) more than the %v predicted", costmodel.Bytes(far), share(far, predicted), costmodel.Bytes(predicted))
	}
	return fmt.Sprintf("%v (%s) less than the %v predicted", costmodel.Bytes(far), share(far, predicted), costmodel.Bytes(predicted))
}

func share(bytes, of int64) string {
	percent := 100 * float64(bytes) / float64(of)
	switch {
	case percent >= 10:
		return fmt.Sprintf("%.0f %%", percent)
	case percent >= 1:
		return fmt.Sprintf("%.1f %%", percent)
	}
	return fmt.Sprintf("%.2g %%", percent)
}

func span(low, high int64) string {
	if low == high {
		return costmodel.Bytes(low).String()
	}
	return fmt.Sprintf("%v to %v", costmodel.Bytes(low), costmodel.Bytes(high))
}

// one returns the words for one, or for several.
func one(count int, single, several string) string {
	if count == 1 {
		return single
	}
	return fmt.Sprintf(several, count)
}
