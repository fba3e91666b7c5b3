package estimate

import "github.com/devmap-dev/devmap/costmodel"

// situations adds the warnings that no figure of a unit raises: each in its
// own file.
func (e *estimator) situations(t *costmodel.Table) {
	e.warnFamily(t)
	e.warnFlash(t)
	if e.w.Mode == costmodel.Load {
		return
	}
	e.warnLength()
	e.warnGPU0()
	e.warnUnload()
}
