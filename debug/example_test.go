package debug_test

import (
	"log"
	"net/http"

	"github.com/understudy-lb/understudy/debug"
)

// The page beside that of net/http/pprof, on a port that only operators reach.
func Example() {
	mux := http.NewServeMux()
	mux.Handle("/debug/understudy/", debug.Handler())
	go func() { log.Print(http.ListenAndServe("localhost:6060", mux)) }()
}
