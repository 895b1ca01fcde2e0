package arch

import "runtime/debug"

func init() { debug.SetGCPercent(400) } // the tests keep all syntax trees
