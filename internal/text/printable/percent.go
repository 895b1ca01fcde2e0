package printable

import (
	"strconv"
	"strings"
)

// Percent formats a share as a percentage, with at most one decimal place and without the percent
// sign.
func Percent(share float64) string {
	if share > 0 && share < 0.0005 {
		return "< 0.1"
	}
	return strings.TrimSuffix(strconv.FormatFloat(100*share, 'f', 1, 64), ".0")
}
