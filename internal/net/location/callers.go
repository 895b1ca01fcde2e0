package location

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const maxZones = 1000

// Callers parses the number of clients in each zone, such as "a:2,b:1". Each number must be from 0
// to a billion, and at least one must be greater than 0.
func Callers(text string) (map[string]float64, error) {
	const maxCallers = 1e9
	callers, hasCallers := make(map[string]float64), false
	for entry := range strings.SplitSeq(text, ",") {
		colon := strings.LastIndexByte(entry, ':')
		if colon < 1 {
			return nil, fmt.Errorf("%s given, want zones with their numbers of callers, such as a:2,b:1", printable.Quote(entry))
		}
		zone := entry[:colon]
		if problem := Problem(zone); problem != "" {
			return nil, fmt.Errorf("zone %s", problem)
		}
		n, err := strconv.ParseFloat(entry[colon+1:], 64)
		if err != nil || !(n >= 0 && n <= maxCallers) {
			return nil, fmt.Errorf("zone %s has %s callers, want a number from 0 to a billion", printable.Quote(zone), printable.Quote(entry[colon+1:]))
		}
		if _, isDuplicate := callers[zone]; isDuplicate {
			return nil, fmt.Errorf("zone %s is given twice", printable.Quote(zone))
		}
		if callers[zone] = n; len(callers) > maxZones {
			return nil, fmt.Errorf("more than %d zones are given", maxZones)
		}
		hasCallers = hasCallers || n > 0
	}
	if !hasCallers {
		return nil, fmt.Errorf("%s given, but no zone has callers; want at least one", printable.Quote(text))
	}
	return callers, nil
}
