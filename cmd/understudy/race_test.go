//go:build race

package main

// underRace reports whether the race detector is on. The race detector needs several times the
// memory.
const underRace = true
