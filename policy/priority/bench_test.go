package priority

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"

	"github.com/understudy-lb/understudy/internal/core/share"
)

// A pick and its Done at a share of 1, with the child alone and with shares. The child's picker has
// a Done function, as with outlier detection.
func BenchmarkPickAndDone(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	done := func(balancer.DoneInfo) {}
	conn := &subConn{SubConn: namedConn{name: "a"}}
	child := pickerFunc(func(balancer.PickInfo) (balancer.PickResult, error) {
		return balancer.PickResult{SubConn: conn, Done: done}, nil
	})
	shares := func() balancer.Picker {
		var offers []offer
		for range 2 {
			offers = append(offers, offer{newIntake(time.Now(), share.DefaultRamp, func() {}), child})
		}
		return &offerPicker{offers: offers, shed: ignore}
	}
	answered := balancer.DoneInfo{BytesSent: true, BytesReceived: true}
	for name, picker := range map[string]balancer.Picker{"child": child, "shares": shares()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					result, err := picker.Pick(balancer.PickInfo{Ctx: ctx, FullMethodName: "/a/b"})
					if err != nil {
						b.Fatal(err)
					}
					result.Done(answered)
				}
			})
		})
	}
}
