"""scikit-learn estimators: parameters, the preparation of fits, and methods over the stages."""

from gpuforest.estimators.registration import stand_in

stand_in()
