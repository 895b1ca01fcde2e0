// Command fleet simulates the first calls of a fleet of clients, and writes what
// it finds as a page and a plot.
//
//	go run ./docs/fleet            writes docs/fleet/README.md and load.svg
//	go run ./docs/fleet -out DIR   writes them to DIR
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", filepath.Join("docs", "fleet"), "the directory to write to")
	flag.Parse()
	if err := run(*out, published); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// published is the fleet of the page in the repository.
var published = fleet{clients: 10_000, endpoints: 1000, maxWeight: 100, calls: 50}

// run simulates f and writes the page and the plot to the directory.
func run(directory string, f fleet) error {
	results := f.simulate()
	for name, content := range map[string]string{
		"README.md": page(f, results),
		"load.svg":  plot(f, results),
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	return nil
}
