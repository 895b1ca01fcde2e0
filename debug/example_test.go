package debug_test

import (
	"log"
	"net/http"

	"github.com/understudy-lb/understudy/debug"
)

// The page beside that of net/http/pprof, on a port of loopback. Behind a proxy that knows who
// asks, and passes on the Host that it was asked for, leave LoopbackOnly out.
func Example() {
	mux := http.NewServeMux()
	mux.Handle("/debug/understudy/", debug.Handler())
	go func() { log.Print(http.ListenAndServe("localhost:6060", debug.LoopbackOnly(mux))) }()
}
