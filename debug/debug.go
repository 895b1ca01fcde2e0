// Package debug serves a page that shows the load balancing of all channels of a program:
//
//	http.Handle("/debug/understudy/", debug.Handler())
//
// For each channel the page shows which priority is in use and why none above it is, the state,
// share and recent calls of each endpoint, the state of its sources, and recent events. It updates
// itself and works without JavaScript. ?format=json returns the same content for programs.
// docs/debug.md describes both formats and their cost.
//
// Importing the package enables this for channels that are created afterwards. It opens no
// listener and registers nothing on http.DefaultServeMux. The page contains host names: serve it
// like net/http/pprof, and behind LoopbackOnly on a loopback listener.
package debug

import (
	"net/http"

	"github.com/understudy-lb/understudy/internal/debugpage"
	"github.com/understudy-lb/understudy/internal/live"
)

func init() { live.Enable() }

// Handler returns the handler of the page. It may be mounted at any path, because its links are
// relative and consist only of queries.
func Handler() http.Handler { return debugpage.Handler() }
