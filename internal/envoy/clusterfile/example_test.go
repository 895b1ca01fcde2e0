package clusterfile_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/understudy-lb/understudy/internal/envoy/clusterfile"
	"github.com/understudy-lb/understudy/internal/envoy/messages"
)

// Load reports all mistakes in a file, each with its line and column.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "endpoints.yaml")
	content := `
endpoints:
- localty: {region: us-east}
  lb_endpoints:
  - endpoint: {address: {socket_address: {address: 192.0.2.1, port_value: http}}}
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	_, err = clusterfile.Load(path)
	for _, p := range err.(*messages.Invalid).Problems {
		fmt.Printf("endpoints.yaml:%d:%d: %s\n", p.At.Line, p.At.Column, p.Text)
	}
	// Output:
	// endpoints.yaml:3:3: unknown field "localty", did you mean locality?
	// endpoints.yaml:5:75: port_value: want a whole number from 1 to 65535, got "http"
}
