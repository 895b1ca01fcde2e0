// Command understudy explains endpoints files, and shows failover and weighted
// load balancing at work.
package main

func main() {}
