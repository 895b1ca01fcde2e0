// Package settle waits until the reports of a source have reached the channel, because the methods
// of discovery.Receiver return earlier. For tests only.
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

// Wait waits until no serializer runs in the background. It returns at once if the caller is not
// the test's own goroutine or is called by a serializer, because a serializer might wait for the
// caller.
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

// Receiver returns a copy of r whose methods return only after the report has reached the channel.
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
