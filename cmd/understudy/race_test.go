//go:build race

package main

// underRace tells that the race detector is on, with which a process needs much more memory.
const underRace = true
