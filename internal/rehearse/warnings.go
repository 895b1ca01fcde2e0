package rehearse

import (
	"cmp"
	"fmt"
	"math"
)

// Warnings says which priorities can't carry the calls on their own or, with overflow, together
// with those below them. rate is the number of calls per second. If it's 0, we take the capacity of
// the first priority.
func Warnings(capacity []float64, endpoints []int, rate float64, overflow bool, unit string) (list []string) {
	for p, sum := range capacity {
		names, last := fmt.Sprintf("p%d", p), len(capacity)-1
		if overflow && 0 < p && p < last {
			names = fmt.Sprintf("p%d to p%d", p, last)
			for _, below := range capacity[p+1:] {
				sum += below
			}
		}
		made := fmt.Sprintf("%s can answer %s calls/s and the clients make %s", names, Calls(sum), Calls(rate))
		switch {
		case sum >= cmp.Or(rate, capacity[0]):
		case rate == 0:
			list = append(list, fmt.Sprintf("%s can take about %.3g %% of p0's calls ("+unit+")", names, 100*sum/capacity[0], Calls(sum), Calls(capacity[0])))
		case p == 0:
			list = append(list, made+": it is full without any fault")
		default:
			enough := math.Ceil(float64(endpoints[p])*(1+(rate-sum)/capacity[p]) - 1e-9)
			list = append(list, fmt.Sprintf("%s: when the priorities above it fail, at least %.0f %% of the calls are lost (enough: %.0f endpoints in p%d)", made, 100*(1-sum/rate), enough, p))
		}
	}
	return list
}

func Calls(inASecond float64) string {
	if inASecond >= 1000 {
		return fmt.Sprintf("%.0f", inASecond)
	}
	return fmt.Sprintf("%.4g", inASecond)
}
