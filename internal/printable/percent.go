package printable

import (
	"strconv"
	"strings"
)

// Percent returns a share in percent, with one decimal place if that is not zero.
func Percent(share float64) string {
	if share > 0 && share < 0.0005 {
		return "< 0.1"
	}
	return strings.TrimSuffix(strconv.FormatFloat(100*share, 'f', 1, 64), ".0")
}
