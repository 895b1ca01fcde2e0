// Command fleet simulates the first calls of a fleet of clients, and writes a page and a plot. It
// also writes pages and plots from recordings: of worlds in which the priorities are full (a plot
// only), and of worlds in which a backend is slow.
//
//	go run ./test/bench/fleet            writes the pages and plots of docs/fleet
//	go run ./test/bench/fleet -out DIR   writes them to DIR
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
	if err := run(*out, publishedFleet); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

var publishedFleet = fleet{clients: 10_000, endpoints: 1000, maxWeight: 100, calls: 50}

func run(directory string, f fleet) error {
	results := f.simulate()
	overloaded, err := goodput(goodputs)
	if err != nil {
		return err
	}
	slow, err := parseTails(tailRecord)
	if err != nil {
		return err
	}
	files := map[string]string{
		"tail.md": slow.page(), "tail.svg": slow.plot("1s"), "goodput.svg": overloaded,
		"README.md": page(f, results), "load.svg": plot(f, results),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	return nil
}
