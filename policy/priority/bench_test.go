package priority

import (
	"fmt"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
)

// BenchmarkOverflow compares a pick and its Done without and with overflow, at a share of 1: in
// turns, and with the shortest times, because other processes disturb. It also times a timed call.
func BenchmarkOverflow(b *testing.B) {
	for name, child := range map[string]string{
		"without outlier detection": weighted,
		"with outlier detection":    fmt.Sprintf(outlierDetection, weighted),
	} {
		b.Run(name, func(b *testing.B) {
			on := newReadyTree(b, child, 10, true).picker()
			highest := on.(*offerPicker).offers[0]
			pickers := []balancer.Picker{newReadyTree(b, child, 10, false).picker(), on, pickerFunc(func(info balancer.PickInfo) (balancer.PickResult, error) {
				return highest.pickTimed(info)
			})}
			const calls = 1000
			shortest := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
			for b.Loop() {
				for i, picker := range pickers {
					began := time.Now()
					call(b, picker, calls)
					shortest[i] = min(shortest[i], float64(time.Since(began).Nanoseconds())/calls)
				}
			}
			b.ReportMetric(shortest[0], "off-ns")
			b.ReportMetric(shortest[1], "on-ns")
			b.ReportMetric(shortest[1]-shortest[0], "more-ns")
			b.ReportMetric(shortest[2], "timed-ns")
			b.ReportMetric(0, "ns/op")
		})
	}
}
