//go:build race

package main

// underRace reports whether the race detector is on: a process then needs several times as much
// memory.
const underRace = true
