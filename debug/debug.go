// Package debug serves a page that shows how the channels of a program balance their calls:
//
//	http.Handle("/debug/understudy/", debug.Handler())
//
// For each channel, the page shows the priority in use and why no higher priority is used; the
// state, traffic share and recent calls of each endpoint; the state of the channel's sources; and
// recent events. The page refreshes itself and works without JavaScript. With ?format=json it
// returns the same data as JSON. docs/debug.md describes both formats and their cost.
//
// Importing the package enables collection for channels created afterwards. The package opens no
// listener and registers nothing on http.DefaultServeMux. The page reveals host names, so restrict
// access to it as you would for net/http/pprof. On a loopback listener, wrap it in LoopbackOnly.
package debug

import (
	"net/http"

	"github.com/understudy-lb/understudy/internal/lb/live"
	"github.com/understudy-lb/understudy/internal/page"
)

func init() { live.Enable() }

// Handler returns the handler of the page. It may be mounted at any path, because its links are
// relative.
func Handler() http.Handler { return page.Handler() }
