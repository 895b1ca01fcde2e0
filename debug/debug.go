// Package debug shows the load balancing of all channels of a program, live:
//
//	http.Handle("/debug/understudy/", debug.Handler())
//
// The page says for each channel which priority is in use and why none above it is, what
// each endpoint's state and share is, how its calls ended, what its sources said, and what
// happened last. It updates itself, and works without script. With ?format=json it says
// the same to a program. docs/debug.md describes both, and what they cost.
//
// Importing the package is what switches this on, for channels that are made from then
// on. It opens no listener, and puts nothing on http.DefaultServeMux. What it shows names
// machines: mount it where net/http/pprof is, and behind LoopbackOnly where that is loopback.
package debug

import (
	"net/http"

	"github.com/understudy-lb/understudy/internal/debugpage"
	"github.com/understudy-lb/understudy/internal/live"
)

func init() { live.Enable() }

// Handler returns the handler of the page. It may be mounted anywhere: all that it
// refers to is in the query of its own path.
func Handler() http.Handler { return debugpage.Handler() }
