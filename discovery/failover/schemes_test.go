package failover_test

// The schemes of parts. They are imported here because file: itself has parts of failover:.
import (
	_ "github.com/understudy-lb/understudy/discovery/eds"
	_ "github.com/understudy-lb/understudy/discovery/file"
	_ "github.com/understudy-lb/understudy/discovery/srv"
)
