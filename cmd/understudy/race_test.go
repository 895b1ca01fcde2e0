//go:build race

package main

// underRace reports whether the race detector is on. With it, a process needs several times as much
// memory.
const underRace = true
