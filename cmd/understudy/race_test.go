//go:build race

package main

// underRace is set where the race detector is on, which takes several times the memory.
const underRace = true
