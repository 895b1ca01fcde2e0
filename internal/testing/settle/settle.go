// Package settle waits for a source's reports to reach the channel. The methods of
// discovery.Receiver return before that.
package settle

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/serial"
)

// Wait waits until no serializer is running in the background. If it's not called by the test's own
// goroutine, or if it's called by a serializer, it returns at once because a serializer might be
// waiting for the caller.
func Wait() {
	switch stack := debug.Stack(); {
	case bytes.Contains(stack, []byte("serial.(*Serializer)")), !bytes.Contains(stack, []byte("testing.tRunner")):
	case bytes.Contains(stack, []byte("synctest bubble")):
		synctest.Wait()
	default:
		for serial.Background() > 0 {
			runtime.Gosched()
		}
	}
}

func Receiver(r *discovery.Receiver) *discovery.Receiver {
	return r.With(discovery.Hooks{
		Update:      func(a discovery.Answer) error { defer Wait(); return r.Update(a) },
		Fail:        func(err error) { defer Wait(); r.Fail(err) },
		Confirm:     func() { defer Wait(); r.Confirm() },
		Unconfirmed: func(err error, since time.Time) { defer Wait(); r.Unconfirmed(err, since) },
		Rejected:    func(err error) { defer Wait(); r.Rejected(err) },
		Trying:      func(text string) { defer Wait(); r.Trying(text) },
		Mechanisms:  func(list []discovery.Mechanism) { defer Wait(); r.Mechanisms(list) },
	})
}
