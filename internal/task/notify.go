package task

// Notify wakes up the receiver of a channel with room for one notice. If a notice waits in it, none is
// added: the receiver handles everything that happened until it receives it.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
