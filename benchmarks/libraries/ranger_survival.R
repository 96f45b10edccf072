# One survival forest of ranger: Rscript ranger_survival.R FOLDER TREES SEED [DEPTH]
# The folder has files of f64: X and X_test (feature after feature), y (times, then events), times;
# what is predicted is put there: risks, and curves (time after time). Prints processor seconds of
# the fit and of the risks, and bytes of the model.
suppressMessages(library(ranger))
options <- c(commandArgs(TRUE), "0")
numbers <- function(name) {
  file <- file.path(options[1], name)
  readBin(file, "numeric", file.size(file) / 8)
}
y <- matrix(numbers("y"), ncol = 2, dimnames = list(NULL, c("time", "status")))
X <- matrix(numbers("X"), nrow(y))
X_test <- matrix(numbers("X_test"), ncol = ncol(X))
colnames(X) <- colnames(X_test) <- paste0("f", seq_len(ncol(X)))
times <- numbers("times")

cpu_seconds <- function(call) {
  used <- system.time(call())
  sum(used[c("user.self", "sys.self")])
}
fit <- cpu_seconds(function() model <<- ranger(
  x = X, y = y, num.trees = as.integer(options[2]), seed = as.integer(options[3]),
  max.depth = as.integer(options[4]), num.threads = 1, oob.error = FALSE, verbose = FALSE
))
ask <- cpu_seconds(function() found <<- predict(model, X_test, num.threads = 1, verbose = FALSE))
at <- findInterval(times, found$unique.death.times)
curves <- cbind(1, found$survival)[, at + 1]
writeBin(as.numeric(rowSums(found$chf)), file.path(options[1], "risks"))
writeBin(as.numeric(curves), file.path(options[1], "curves"))
file <- tempfile()
saveRDS(model, file, compress = FALSE)
cat(fit, ask, file.size(file), "\n")
