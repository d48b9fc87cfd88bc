package recorder

// PID is the process id of Prometheus.
func (r *Recorder) PID() int { return r.proc.PID() }
