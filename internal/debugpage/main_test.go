package debugpage

import "github.com/understudy-lb/understudy/internal/live"

func init() { live.Enable() } // programs enable recording by importing package debug
