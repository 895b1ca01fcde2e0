// Release writes the public modules to a directory that can be used as GOPROXY=file://DIRECTORY.
// They have the content that a tag would publish.
//
//	go run ./release REPOSITORY VERSION DIRECTORY
package main

import (
	"fmt"
	"os"

	"github.com/understudy-lb/understudy/tools/modproxy"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "release: want REPOSITORY VERSION DIRECTORY")
		os.Exit(2)
	}
	if err := modproxy.Write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
