//go:build race

package main

// raceEnabled reports whether the race detector is enabled. It makes a process use much more
// memory.
const raceEnabled = true
