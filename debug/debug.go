// Package debug serves a page that shows how the channels of a program balance their calls:
//
//	http.Handle("/debug/understudy/", debug.Handler())
//
// For each channel, you can see which priority is in use and why no higher one is; the state, share
// and recent calls of each endpoint; the state of the channel's sources; and recent events. The
// page refreshes itself, though it doesn't need JavaScript. Add ?format=json to get the same data
// as JSON. docs/debug.md describes both formats and what they cost.
//
// Data is only collected for channels that are created after this package has been imported. The
// package doesn't open a listener, nor does it register anything on http.DefaultServeMux. Since the
// page reveals host names, restrict access to it as you would for net/http/pprof. If your listener
// is on a loopback address, wrap the handler in LoopbackOnly.
package debug

import (
	"net/http"

	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/page"
)

func init() { live.Enable() }

// Handler returns the handler of the page. All links are relative, so you can mount it at any path.
func Handler() http.Handler { return page.Handler() }
