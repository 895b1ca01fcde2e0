package debugpage

import "github.com/understudy-lb/understudy/internal/live"

func init() { live.Enable() }
