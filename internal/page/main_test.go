package page

import "github.com/understudy-lb/understudy/internal/lb/live"

func init() { live.Enable() }
