package debug_test

import (
	"log"
	"net/http"

	"github.com/understudy-lb/understudy/debug"
)

// This example serves the page on a loopback port. Omit LoopbackOnly behind a proxy that
// authenticates users and keeps the original Host header.
func Example() {
	mux := http.NewServeMux()
	mux.Handle("/debug/understudy/", debug.Handler())
	go func() { log.Print(http.ListenAndServe("localhost:6060", debug.LoopbackOnly(mux))) }()
}
