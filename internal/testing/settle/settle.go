// Package settle waits until what a source said has been told. Receivers do not wait for it.
package settle

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/serial"
)

// Wait waits, on the stack of a test, until nothing runs in the background any more. On the stack
// of anything else it returns at once: that may be waited for itself.
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

// Receiver returns r, whose methods wait until what they said has been told.
func Receiver(r *discovery.Receiver) *discovery.Receiver {
	return r.With(discovery.Hooks{
		Update:      func(a discovery.Answer) error { defer Wait(); return r.Update(a) },
		Fail:        func(err error) { defer Wait(); r.Fail(err) },
		Confirm:     func() { defer Wait(); r.Confirm() },
		Unconfirmed: func(err error, since time.Time) { defer Wait(); r.Unconfirmed(err, since) },
		Rejected:    func(err error) { defer Wait(); r.Rejected(err) },
		Trying:      func(text string) { defer Wait(); r.Trying(text) },
		Parts:       func(parts []discovery.Mechanism) { defer Wait(); r.Parts(parts) },
	})
}
