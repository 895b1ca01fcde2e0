//go:build race

package main

// underRace reports whether the race detector is on. A process then needs much more memory.
const underRace = true
